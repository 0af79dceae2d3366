"""What people call a browser, from what it says of itself; only this is kept."""

# The first that is named: most browsers also name those that they are like
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def agent_name(user_agent: str) -> str | None:
    """Such as `Firefox, Linux`; None where neither is known."""
    found = [next((name for mark, name in known if mark in user_agent[:500]), None) for known in (BROWSERS, SYSTEMS)]
    return ", ".join(name for name in found if name) or None
