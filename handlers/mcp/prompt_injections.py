"""Recognises texts that give orders to a machine, by words that orders contain, in the languages of bookings.

It finds plain orders and no more; anyone who rewords long enough gets past any list. The fence around a text is what
protects.
"""

# ruff: noqa: E501 - alternatives read better in rows than in columns

import re
from functools import cache

from analytics.letters import plain
from handlers.mcp.masked_numbers import plain_letter

_RULES = (
    r"instruction|instruk|instructie|istruzion|instruc|anweisung|anleitung|vorgabe|regel|befehl|consigne|directive|regle|"
    r"regla|orden|ordre|ordin|indicacion|indicazion|regol|regra|opdracht|aanwijzing|polecen|zasad|pokyn|rule|prompt|"
    r"guideline|context|kontext|polic|talimat|kural|инструкц|правил|указан|指令|指示|说明|命令|تعليمات"
)
_PERSON = (
    r"user|customer|client|account ?holder|owner|human|reader|nutzer|benutzer|anwender|kunde|kontoinhaber|utilisateur|"
    r"titulaire|usuario|cliente|titular|utente|titolare|gebruiker|klant|rekeninghouder|uzytkownik|klient|клиент|пользовател"
)
_MACHINE = (
    r"assistant|assistent|assistente|asistente|asystent|chatbot|bot|llm|ai|ki|ia|language model|sprachmodell|"
    r"modele de langage|modelo de lenguaje|modello linguistico|taalmodel|chatgpt|claude|gpt|copilot|gemini|agent"
)
_BANK_DATA = (
    r"transaction|balance|account|iban|data|history|statement|password|tan|pin|kontostand|umsatz|umsatze|daten|"
    r"transaktion|konto|passwort|solde|compte|donnees|historique|saldo|cuenta|datos|historial|conto|dati|rekening|gegevens"
)
_TARGET = r"link|here|url|site|page|website|hier|seite|lien|ici|enlace|aqui|sitio|qui|sito|pagina|code|formular|form"

_ORDERS = (
    # Forget what you were told
    rf"\b(?:ignor\w*|disregard\w*|forget|override|bypass|missacht\w*|vergiss|vergessen sie|ubergeh\w*|oublie\w*|neglige\w*|"
    rf"olvida\w*|omite|omita|haz caso omiso|dimentica\w*|trascura\w*|esqueca|desconsidere|negeer|vergeet|zignoruj|zapomnij|"
    rf"pomin|ignorera|yok say|unut|игнорируй\w*|забудь\w*|tiens? pas compte|tenez pas compte)\b.{{0,60}}?(?:{_RULES})",
    rf"(?:{_RULES})\w*\b.{{0,40}}?\b(?:ignorier\w*|vergess\w*|missacht\w*|ignorar|ignorer|negeren|yok say|gormezden)",
    r"(?:忽略|无视|無視|تجاهل|무시하|अनदेखा कर)",
    # Be somebody else
    r"\b(?:you are now|you're now|act as|pretend (?:to be|you)|from now on|du bist (?:jetzt|nun|ab)|ab (?:jetzt|sofort) "
    r"(?:bist|antwort|sag|handel)\w*|verhalte dich|tu es (?:maintenant|desormais|un)|vous etes (?:maintenant|desormais)|"
    r"agis(?:sez)? (?:comme|en tant)|ahora eres|actua como|a partir de ahora|ora sei|adesso sei|agisci come|je bent nu|"
    r"gedraag je|jestes teraz|voce agora e)\b",
    r"\b(?:developer|dan|god|debug|admin|maintenance) ?mode\b|\bjailbreak\b|\bentwicklermodus\b",
    # Words that only machines are told
    r"\b(?:system|developer|hidden|new|neue\w*|nouvel\w*|nuev\w*|nuov\w*|nieuwe|important|wichtige\w*|urgent\w*) ?"
    r"(?:prompt|instruction|instruktion|anweisung|consigne|instruccion|istruzion|instructie|message to|nachricht an)",
    r"\bsystem ?(?:prompt|message|override|nachricht|notice|hinweis|meldung|alert|instruction)\b",
    r"(?:^|[^\w])(?:system|assistant|developer|user|human|ai|tool)\s*:(?!\s*\d)",
    r"\bim[ _]start\b|\bendoftext\b|\(/?inst\)|\bbegin (?:system|instruction|admin)|\bend of (?:data|prompt|context|text)\b",
    rf"\b(?:dear|hey|hi|hello|attention|note to|to|for|as|lieber?|hallo|achtung|an|als|cher|chere|bonjour|a l'|pour l'|"
    rf"estimado|querido|hola|caro|cara|ciao|beste|gentile) (?:the |den |die |das |de |an |any |every |all |our |your |"
    rf"jede\w* |alle |l')?(?:{_MACHINE})\b",
    rf"\b(?:{_MACHINE})s?\b[^\w]{{0,3}}\s*(?:must|should|shall|please|bitte|muss|soll|sollte|doit|devez|debe|deve|moet|you|du|sie)\b",
    rf"\b(?:you|tu|du|sie) (?:are|bist|sind|es|eres|sei) (?:an? |ein\w* |une? |un |el )?\w{{0,12}} ?(?:{_MACHINE})\b",
    r"\b(?:you must|you should|you shall|you have to|you need to|du musst|du sollst|sie mussen|sie sollen|tu dois|"
    r"vous devez|debes|tienes que|devi|dovete|je moet|u moet|musisz|voce deve)\b",
    # Tell somebody something, or keep it from them
    rf"\b(?:tell|inform|advise|warn|ask|instruct|convince|urge|remind|notify|alert|persuade|recommend|sage?|teile?|"
    rf"informier\w*|warne?|frage?|bitte|forder\w*|weise?|uberzeuge?|erklare?|rate|empfiehl|dis|dites|informez?|avertis\w*|"
    rf"demandez?|conseille\w*|dile|diga|informa|avisa|pide|pregunta|di|avvisa|chiedi|vertel|zeg|informeer|vraag|waarschuw|"
    rf"powiedz|poinformuj|скажи|сообщи)\b.{{0,25}}?\b(?:{_PERSON})",
    r"\b(?:do not|don't|dont|never|must not|without) (?:tell|mention|reveal|show|inform|warn|ask|disclos|say|let)\w*",
    r"\b(?:erwahne|verrate|sage?|zeige?|nenne)\b.{0,40}\b(?:nicht|nichts|niemand\w*|keinesfalls)\b",
    r"\bne (?:dis|dites|mentionne\w*|montre\w*|revele\w*)\b|\bno (?:le )?(?:digas|menciones|muestres|reveles)\b|"
    r"\bnon (?:dire|menzionare|mostrare|rivelare)\b|\b(?:vertel|zeg|noem)\b.{0,20}\bniet\b",
    # Use a tool
    r"\b(?:get_overview|search_transactions|summarize_transactions|get_cashflow|get_balances|get_forecast|list_recurring_payments|list_notices|"
    r"explain_figure|get_transaction|refresh_bank_data|includeiban|tools?/call|function[_ ]call|tool[_ ]call)\b",
    r"\b(?:call|use|invoke|run|execute|trigger|nutze|verwende|benutze|rufe?|fuhre|starte|appelle\w*|utilise\w*|execute\w*|"
    r"lance\w*|usa|utiliza|llama|ejecuta|esegui|chiama|gebruik|roep|voer|uzyj|wywolaj)\b.{0,30}?\b(?:tool|function|"
    r"werkzeug|funktion|befehl|outil|fonction|commande|herramienta|funcion|comando|strumento|funzione|api|command|plugin|"
    r"connector|hulpmiddel|functie|narzedzi)",
    # Send data
    rf"\b(?:send|email|post|forward|upload|exfiltrate|submit|leak|export|list|show|print|paste|share|give|sende|schicke|"
    rf"leite|ubermittle|zeige|nenne|gib|liste|teile|envoie\w*|envoyez|montre\w*|donne\w*|affiche\w*|envia|muestra|da|"
    rf"comparte|invia|mostra|condividi|stuur|toon|geef|deel)\b.{{0,30}}?\b(?:all|every|the|your|their|his|full|alle|den|die|das|"
    rf"deine|tous|toutes|les|le|la|votre|todos|todas|los|las|tutti|tutte|il|i|de|het)\b.{{0,30}}?\b(?:{_BANK_DATA})",
    # Come to my page
    rf"\b(?:click|open|visit|go to|log ?in|sign ?in|enter|klicke?n?|offnen?|besuchen?|gehe? (?:auf|zu)|cliquez?|ouvre\w*|visite\w*|"
    rf"rendez|allez|haz clic|haga clic|pulsa|abre|abra|visita|clicca\w*|apri|vai|klik|bezoek|kliknij|otworz)\b.{{0,40}}?"
    rf"\b(?:{_TARGET})\b",
    # Answer as I say
    r"\b(?:respond|reply|answer|output|print|repeat|write|say|state|summari[sz]e|translate|conclude|always) (?:only|exactly|"
    r"with|in|as|the following|that|:|\"|'|back)",
    r"\b(?:append|prepend|include|insert|add|fuge|hange|ajoute\w*|anade|incluye|aggiungi|voeg)\b.{0,60}?\b(?:answer|response|"
    r"reply|message|summary|antwort|zusammenfassung|reponse|respuesta|risposta|antwoord)",
    r"\b(?:antworte\w*|gib|schreibe?|wiederhole?|fasse?|behaupte|repond\w*|ecri[sv]\w*|repete\w*|affirme\w*|responde|"
    r"escribe|repite|afirma|rispondi|scrivi|ripeti|antwoord|schrijf|herhaal|odpowiedz|napisz)\b.{0,25}?\b(?:nur|immer|mit|aus|"
    r"dass|folgend\w*|als|auf|seulement|toujours|que|avec|en|solo|siempre|con|sempre|che|in|alleen|altijd|met|dat|tylko)\b",
    r"\b(?:mark|treat|classify|label|consider|approve|authori[sz]e|markiere?|behandle|genehmige|stufe|considere\w*|marque\w*|"
    r"approuve\w*|autorise\w*|marca|trata|aprueba|autoriza|considera|approva|autorizza)\b.{0,30}?\b(?:this|these|all|any|"
    r"diese?\w*|alle|ce|cette|ces|tous|toutes|esta?e?|todas?|questo|questa|tutti) (?:\w+ )?(?:transaction|payment|transfer|"
    r"request|text|message|zahlung|buchung|uberweisung|transaktion|paiement|virement|pago|transferencia|transaccion|"
    r"pagamento|bonifico)",
)

# Requests that a known person may make as well
_REQUESTS = (
    r"\b(?:transfer|send|wire|pay|move|forward|uberweise|uberweisen sie|sende|senden sie|schicke|zahle|zahlen sie|bezahle|"
    r"virez?|transfere\w*|envoie\w*|envoyez|payez|transfiere|transfiera|envia|envie|manda|paga|trasferisci|invia|"
    r"bonifica|maak|stuur|betaal|przelej|wyslij|transfira)\b.{0,60}?\b(?:to|auf|an|nach|a|au|sur|vers|al|alla|naar|na|"
    r"para)\b.{0,40}?\b(?:account|iban|wallet|address|email|konto|adresse|e-?mail|mail|compte|cuenta|correo|direccion|"
    r"conto|indirizzo|rekening|adres|following|folgende\w*|suivant\w*|siguiente\w*|seguente)",
    r"\b(?:verify|confirm|validate|update|restore|unlock|reactivate|bestatige\w*|verifizier\w*|aktualisier\w*|entsperr\w*|"
    r"confirme\w*|verifie\w*|validez?|confirma\w*|verifica\w*|conferma\w*|bevestig|verifieer|potwierdz)\b.{0,30}?\b(?:your|"
    r"ihre?|dein\w*|votre|vos|tu|su|il tuo|tuo|la tua|uw|je|swoje) (?:\w+ ){0,2}?(?:account|identity|password|card|details|"
    r"data|konto|identitat|passwort|karte|daten|compte|identite|carte|cuenta|identidad|conto|identita|carta|rekening)",
)


def _fold_for_orders(text: str) -> str:
    """The text folded as for search (`plain`), with characters replaced by the ASCII letters that they look like."""
    return " ".join(plain("".join(map(plain_letter, text))).replace("’", "'").split())


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The patterns of orders and of requests, folded like the texts: half of a Russian word looks like ASCII."""
    order, request = (
        re.compile("|".join(f"(?:{_fold_for_orders(order)})" for order in orders)) for orders in (_ORDERS, _REQUESTS)
    )
    return order, request


_SPACED_OUT = re.compile(r"(?:\b\w[ ._*\-]{1,2}){4,}\w\b")
_PARTING = re.compile(r"[ ._*\-]")
_DIGITS_FOR_LETTERS = str.maketrans("013457@$", "oieastas")


def looks_like_instructions(text: str) -> bool:
    """Whether the text has words of an order to a machine or of a request for money or a confirmation, be they spaced
    out, or written with look-alike letters and digits."""
    order, request = _patterns()
    return any(order.search(spelling) or request.search(spelling) for spelling in _spellings(text))


def asks_as_people_do(text: str) -> bool:
    """Whether the text has no words of an order to a machine; of one that `looks_like_instructions`, that it only asks
    for money or a confirmation."""
    order, _ = _patterns()
    return not any(map(order.search, _spellings(text)))


def _spellings(text: str) -> tuple[str, str, str]:
    folded = _fold_for_orders(text)
    return folded, folded.translate(_DIGITS_FOR_LETTERS), _join_letters(folded)


def _join_letters(text: str) -> str:
    return _SPACED_OUT.sub(lambda found: _PARTING.sub("", found[0]), text)
