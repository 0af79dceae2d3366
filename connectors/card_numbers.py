"""Card numbers in the form in which they may be stored."""


def hidden_card_number(number: str) -> str:
    """A card number (13 to 19 digits) with its middle hidden (PCI DSS 3.4: at most the first six and last four digits
    are kept); any other text unchanged."""
    digits = "".join(number.split())
    if not (digits.isascii() and digits.isdigit() and 13 <= len(digits) <= 19):
        return number
    return f"{digits[:6]}{'*' * (len(digits) - 10)}{digits[-4:]}"
