"""The words and letters of bank texts that do not say who was paid."""

import unicodedata

# spelled out as German banks do, so that Müller and MUELLER meet; every other accent is dropped
GERMAN = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "o", "œ": "oe", "ł": "l", "đ": "d", "ı": "i"}
ACCENTED = {
    letter: "".join(part for part in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(part))
    for letter in map(chr, range(0xC0, 0x250))
}
PLAIN_LETTERS = {
    **{letter: bare for letter, bare in ACCENTED.items() if bare.isascii()},
    **{chr(mark): "" for mark in range(0x300, 0x370)},  # the same letters, written as letter and mark
    **GERMAN,
}

# who collects for others; SQ *, TST*, PP*, BCK*, CCV* are codes of two or three letters and a star
NAMES_OF_INTERMEDIARIES = """
paypal pay_pal klarna sumup sum_up zettle izettle stripe square paddle adyen mollie amazon_pay google_pay apple_pay
giropay sofort worldpay gocardless fastspring digital_river cleverbridge 2checkout payu gopay comgate payone unzer nexi
concardis ideal tikkie buckaroo multisafepay dlocal ppro trustly lsp
"""
INTERMEDIARIES = rf"(?i)^(?:[a-z]{{2,3}} ?\*|(?:{'|'.join(NAMES_OF_INTERMEDIARIES.split()).replace('_', ' ?')})\b)"
BEHIND_INTERMEDIARY = (
    r"(?i)(?:einkauf bei|ihre zahlung an|zahlung an|purchase (?:from|at)|(?:your )?payment to|aankoop bij|betaling aan|"
    r"nakup u|platba pro|pp ?/? ?\. )\s*([^,]+?)\s*(?:,| eref\b|$)"
)

LEGAL_FORMS = """
gmbh ag se kg kgaa ohg ug eg ev mbh co cie sarl sca sa nv bv ab as oy oyj plc ltd limited llc inc corp spa srl sro spol
aoer gbr inh fa firma company stichting europe deutschland germany international holding group services service
"""
CITIES = """
berlin hamburg muenchen munich koeln cologne frankfurt stuttgart duesseldorf leipzig dortmund essen bremen dresden
hannover nuernberg duisburg bochum wuppertal bielefeld bonn muenster mannheim karlsruhe augsburg wiesbaden mainz kiel
aachen freiburg luebeck erfurt rostock kassel potsdam wien vienna graz linz salzburg zuerich zurich basel bern genf
luxembourg luxemburg london manchester birmingham leeds glasgow edinburgh bristol dublin cork paris lyon amsterdam
rotterdam utrecht eindhoven haag groningen antwerpen brussel bruxelles stockholm oslo kobenhavn copenhagen helsinki
praha prague brno ostrava plzen olomouc bratislava warszawa krakow budapest milano roma madrid barcelona lisboa
new york seattle chicago boston austin cupertino denver houston dallas portland atlanta miami
"""
CARD_WORDS = """
visa mastercard maestro girocard vpay karte kartenzahlung card payment purchase pos debit credit debitkarte kreditkarte
lastschrift basislastschrift folgelastschrift sepa dauerauftrag ueberweisung gutschrift direct standing order
betaalautomaat pas pasvolgnr incasso inkasso overboeking platba kartou trvaly prikaz sagt danke to from at bei aan bij
www com http https de eu nl cz uk us net org bill help the and und der die das fuer von ihr ihre
"""
DROPPED_WORDS = sorted({word for words in (LEGAL_FORMS, CITIES, CARD_WORDS) for word in words.split()})
