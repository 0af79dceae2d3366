"""Words and letters in bank texts that do not say who was paid."""

from importlib.resources import files

from analytics.letters import fold

BEHIND_INTERMEDIARY = (
    r"(?i)(?:einkauf bei|ihre zahlung an|zahlung an|purchase (?:from|at)|(?:your )?payment to|aankoop bij|betaling aan|"
    r"nakup u|platba pro|pp ?/? ?\. )\s*([^,]+?)\s*(?:,| eref\b|$)"
)


def _words() -> list[str]:
    lines = files("analytics.recurring").joinpath("noise_words.txt").read_text("utf-8").splitlines()
    return sorted({fold(word) for line in lines if not line.startswith("#") for word in line.split()})


DROPPED_WORDS = _words()
