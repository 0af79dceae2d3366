"""Words and letters in bank texts that do not say who was paid."""

from analytics.letters import fold

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
DROPPED_WORDS = sorted({fold(word) for words in (LEGAL_FORMS, CITIES, CARD_WORDS) for word in words.split()})
