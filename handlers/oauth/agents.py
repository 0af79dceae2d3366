"""Names a browser from its User-Agent header; sessions keep only this name."""

# The first match counts: most browsers also name others that they are compatible with
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
    """The names of browser and system in a User-Agent header, such as `Firefox, Linux`; only one of them where the
    other is unknown, None where both are. Looks at the first 500 characters."""
    found = [next((name for mark, name in known if mark in user_agent[:500]), None) for known in (BROWSERS, SYSTEMS)]
    return ", ".join(name for name in found if name) or None
