"""Words in bank texts, folded and in ASCII, that say that money was saved, settled, lent, withdrawn in cash or
returned."""

_ASCII = "(?-u)"  # the texts are in ASCII, see `analytics.search_text.in_ascii`

SAVING = "|".join(
    (
        r"\b(?:sparen|sparrate|sparbetrag|\w*sparplan|sparkonto|sparvertrag|fondssparen|tagesgeld\w*|festgeld\w*)\b",
        r"\b(?:umbuchung\w*|rucklagen?|bausparen|bausparrate|bausparbeitrag|bausparvertrag|wertpapier\w*|etfs?)\b",
        r"\b(?:eigenes|eigenem|eigene) konto\b|\bkontoubertrag\b",
        r"\b(?:savings?|brokerage|own (?:account|transfer)|between (?:my|own) accounts)\b",
        r"\b(?:spaarrekening|spaarpot|beleggen|eigen rekening)\b",
        r"\b(?:sporeni|sporici|vlastni (?:ucet|prevod)|mezi vlastnimi ucty)\b",
    )
)
DEPOT = _ASCII + r"(?:^|(?u:[^a-z]))depot(?:\b|sparplan|ubertrag|einzahlung|konto)"  # custody account
SHOP_DEPOT = _ASCII + r"\b(?:home|office|food|bike|garden) ?depot"  # a shop
SETTLEMENT = "|".join(
    (
        r"kreditkartenabr\w*|abrechnung kreditkarte|kreditkarten ?abrechnung",
        r"\b(?:visa|mastercard|kk|amex)[ .-]{0,2}abr\w*",
        r"credit card (?:payment|settlement|bill)|creditcard ?(?:afrekening|incasso)",
        r"splatka kreditni karty|uhrada kreditni karty",
    )
)
INSTALMENT = "|".join(
    (
        r"\brate (?:nr\.? ?)?\d{1,2} ?(?:/|v\.?|von|of) ?\d{1,2}\b|\b\d{1,2}\. ?rate\b",
        r"\bratenzahlung|\bratenkauf|\bteilzahlung",
        r"\binstal?lment \d{1,2} ?(?:/|of) ?\d{1,2}\b|\bpayment \d{1,2} of \d{1,2}\b|\bpay in [34]\b",
        r"\btermijn \d{1,2} ?(?:/|van) ?\d{1,2}\b",
        r"\bsplatka \d{1,2} ?(?:/|z) ?\d{1,2}\b",
    )
)
CASH = "|".join(
    (
        r"\bga nr ?\d|\bgaa\b|geldautomat\w*|bargeld\w*|barauszahlung\w*",
        r"\batm\b|cash ?(?:withdrawal|machine|point)\b",
        r"geldopname|geldautomaat",
        r"bankomat\w*|vyber (?:z |hotovosti)|\bhotovost\b",
    )
)
FEE = r"entgeltabschluss|\bkontofuhrung\w*|\baccount (?:maintenance )?fee\b|\bvedeni uctu\b"  # the bank's own
LEFT_OUT = _ASCII + "|".join((SAVING, SETTLEMENT, INSTALMENT, CASH, FEE))

RETURN = _ASCII + "|".join(
    (
        r"rucklastschrift|rucklast\b|retoure|\bstorno|stornierung|ruckbuchung",
        r"\breturned\b|\breversal\b|\bchargeback",
        r"\bstornering|terugboking|vraceni platby",
    )
)
