"""The counterparts of the demo households: shops with their card texts, companies that collect, people who are paid."""

from connectors.sources.demo.bookings import authority, collector, person
from connectors.sources.demo.cards import Shop

SUPERMARKETS = (
    Shop(text="REWE SAGT DANKE. 4711//Koeln/DE", announced="REWE SAGT DANKE", low="8.00", high="74.00", mcc="5411"),
    Shop(text="EDEKA SCHÖNFELD//KOELN/DE", announced="EDEKA SCHÖNFELD", low="6.00", high="62.00", mcc="5411"),
    Shop(text="LIDL DIENSTLEISTUNG 0815//Koeln/DE", announced="LIDL", low="9.00", high="58.00", mcc="5411"),
    Shop(text="ALDI SUED SAGT DANKE//KOELN/DE", announced="ALDI SUED", low="7.00", high="49.00", mcc="5411"),
)
BAKERY = Shop(text="BÄCKEREI MÜLLER//Koeln/DE", announced="BÄCKEREI MÜLLER", low="4.80", high="4.80", mcc="5462")
DRUGSTORES = (
    Shop(text="DM DROGERIEMARKT SAGT DANKE//KOELN/DE", announced="DM DROGERIEMARKT", low="4", high="38", mcc="5977"),
    Shop(text="ROSSMANN 3307//Koeln/DE", announced="ROSSMANN", low="3", high="31", mcc="5977"),
)
PHARMACY = Shop(text="APOTHEKE AM MARKT//Koeln/DE", announced="APOTHEKE AM MARKT", low="6", high="42", mcc="5912")
FUEL = Shop(text="ARAL AG TANKSTELLE//KOELN/DE", announced="ARAL AG", low="38", high="79", mcc="5541")
RESTAURANTS = (
    Shop(text="L'OSTERIA KOELN", announced="L'OSTERIA", low="14", high="58", mcc="5812"),
    Shop(text="VAPIANO SE KOELN", announced="VAPIANO", low="11", high="39", mcc="5812"),
    Shop(text="MCDONALDS REST 1234", announced="MCDONALDS", low="6", high="19", mcc="5814"),
    Shop(text="SumUp *Cafe Grünspecht", announced="SumUp *Cafe", low="3", high="14", mcc="5812"),
)
TRAVEL = (
    Shop(text="DB VERTRIEB GMBH", announced="DB VERTRIEB", low="19", high="89", mcc="4112"),
    Shop(text="KVB HANDYTICKET", announced="KVB HANDYTICKET", low="3", high="9", mcc="4111"),
)
LEISURE = (
    Shop(text="CINEMAXX ENTERTAINMENT", announced="CINEMAXX", low="11", high="34", mcc="7832"),
    Shop(text="EVENTIM *TICKETS", announced="EVENTIM", low="39", high="120", mcc="7922"),
)
ONLINE_SHOPS = (
    Shop(text="AMZN Mktp DE*#", announced="AMZN Mktp DE", low="9", high="85", mcc="5942"),
    Shop(text="ZALANDO SE BERLIN", announced="ZALANDO SE", low="29", high="140", mcc="5651"),
    Shop(text="IKEA DEUTSCHLAND FIL 147", announced="IKEA DEUTSCHLAND", low="14", high="160", mcc="5712"),
    Shop(text="MEDIA MARKT E-BUSINESS", announced="MEDIA MARKT", low="19", high="199", mcc="5732"),
)
ZALANDO = ONLINE_SHOPS[1]
LONDON_SHOP = Shop(text="WATERSTONES LONDON", announced="WATERSTONES", low="9", high="48", mcc="5942")

EMPLOYER = person("Feinwerk Technik GmbH", bank_name="Beispielbank")
LANDLORD = person("Hausverwaltung Grünberg & Söhne")
FRIEND = person("Jana Lindström")
ROOFER = person("O'Neill & Söhne Dachbau")
DOCTOR = person("Dr. med. Köhler, Arztpraxis")
FAMILY_FUND = authority("Familienkasse der Bundesagentur für Arbeit")

UTILITY = collector("Stadtwerke Köln GmbH")
TELEPHONE = collector("Telekom Deutschland GmbH")
NETFLIX = collector("Netflix International B.V.")
SPOTIFY = collector("Spotify AB")
GYM = collector("McFit Fitness GmbH")
FLOWERS = collector("Blume2000 SE")
VEGETABLE_BOX = collector("Ökokiste Schönegge GmbH")
BROADCASTING_FEE = collector("Rundfunk ARD, ZDF, DRadio")
AUTOMOBILE_CLUB = collector("ADAC e.V.")
CLOUD_STORAGE = collector("Dropbox International Unlimited Company")
CAR_INSURANCE = collector("HUK-COBURG Allgemeine Versicherung AG")
LIABILITY_INSURANCE = collector("Allianz Versicherungs-AG")
RAIL_PASS = collector("Deutschlandticket Rheinbahn AG")
PAYPAL = collector("PayPal Europe S.a.r.l. et Cie S.C.A")
LENDER = collector("Musterbank Baufinanzierung")
