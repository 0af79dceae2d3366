"""The ISO 20022 bank transaction code of a German Geschaeftsvorfallcode (GVC), depending on the sign of the booking.

From the German banks' common data format agreement (DFUE-Abkommen, annex 3); from our bank's view, a direct debit that
we pay is a received one (RDDT) and a card that we use an issued one (CCRD).
"""

# code of a debit, code of a credit (if different), and the GVCs with these codes
_ROWS = """
PMNT-RDDT-ESDD               005 015 105 107 195
PMNT-RDDT-BBDD               004 104 197
PMNT-RDDT-UPDD               181 184
PMNT-IDDT-ESDD               171 192
PMNT-IDDT-BBDD               174 196
PMNT-IDDT-UPDD               009 059 108 109
PMNT-IDDT-RCDD               193
PMNT-RDDT-OODD               084
PMNT-RDDT-XBDD               213
PMNT-ICDT-ESCT PMNT-RCDT-ESCT 020 051 116 119 154 155 156 166 167 169 177 191 194
PMNT-IRCT-ESCT PMNT-RRCT-ESCT 118 161 162 163 164 165 168 188 189
PMNT-ICDT-STDO PMNT-RCDT-STDO 008 052 117 152
PMNT-RCDT-SALA               053 153
PMNT-RRCT-SALA               157
PMNT-ICDT-RRTN               159
PMNT-IRCT-RRTN               160
PMNT-ICDT-SDVA               087
PMNT-RCDT-SDVA               088
PMNT-RCDT-FICT               058
PMNT-ICDT-BOOK PMNT-RCDT-BOOK 820
PMNT-ICDT-XBCT PMNT-RCDT-XBCT 201 202 206 210 211
PMNT-ICDT-XBST               212
PMNT-CCRD-POSD PMNT-CCRD-RIMB 106 182 190
PMNT-CCRD-POSC               006
PMNT-MCRD-UPCT               110
PMNT-MCRD-POSP               198
PMNT-MCRD-DAJT               199
PMNT-MCRD-SMCD               098
PMNT-CNTR-CDPT               082
PMNT-CNTR-CWDL               083
PMNT-CNTR-FCDP               224
PMNT-CNTR-FCWD               225
PMNT-ICHQ-CCHQ               001 075 101 185
PMNT-ICHQ-ORCQ               002 102
PMNT-ICHQ-UPCQ               111
PMNT-ICHQ-OTHR               012 112
PMNT-ICHQ-XBCQ               209 222 223
PMNT-RCHQ-URCQ               070 170
PMNT-RCHQ-UPCQ               183
PMNT-RCHQ-XBCQ               221
PMNT-RCHQ-XRCQ               220
PMNT-DRFT-DDFT               093
PMNT-DRFT-STLR               073 216 217
PMNT-MDOP-OTHR PMNT-MCOP-OTHR 079
PMNT-OTHR-OTHR               818
TRAD-CLNC-OTHR               203
TRAD-DCCT-OTHR               204 218 219
TRAD-GUAR-OTHR               095 205
TRAD-DOCC-OTHR               214 215
TRAD-MDOP-OTHR TRAD-MCOP-OTHR 208
SECU-CUST-REDM               301 340
SECU-CUST-DVCA               302
SECU-SETT-TRAD               303 305 306
SECU-OTHR-OTHR               304 399
SECU-SETT-SUBS               307
SECU-CORP-EXWA               308
SECU-CORP-BONU               309
SECU-MDOP-OTHR SECU-MCOP-OTHR 310
DERV-OTHR-OTHR               311
SECU-CASH-TRFE               320
SECU-CUST-CHRG               321 803
SECU-CUST-INTR               330
FORX-SPOT-OTHR               401 406 411 412
FORX-FWRD-OTHR               402 413 414
FORX-MDOP-OTHR               403
FORX-OTHR-OTHR               407 408 409 415 416 417 418 419 420
FORX-SWAP-OTHR               422
PMET-SPOT-OTHR               423 424
LDAS-FTLN-OTHR               601 602 825 832
LDAS-FTLN-PPAY               603
LDAS-MDOP-INTR LDAS-MCOP-INTR 604 605 812
LDAS-FTLN-DDWN               606
LDAS-OTHR-OTHR               607 826
LDAS-MDOP-CHRG LDAS-MCOP-CHRG 810 811
LDAS-FTDP-DPST LDAS-FTDP-RPMT 823 827 828 829
LDAS-FTDP-INTR               830
ACMT-MDOP-CHRG ACMT-MCOP-CHRG 801 802 804 806 807 808
ACMT-MDOP-COMM ACMT-MCOP-COMM 809
ACMT-OPCL-ACCC               805
ACMT-MDOP-INTR ACMT-MCOP-INTR 814 816 817
ACMT-OTHR-OTHR               815
ACMT-MDOP-ADJT ACMT-MCOP-ADJT 836
ACMT-MDOP-TAXE               837
ACMT-ADOP-PSTE               899
CAMT-CAPL-OTHR               833 834
"""


def bank_transaction_code_of(gvc: str | None, *, is_credit: bool) -> str | None:
    """The code DOMAIN-FAMILY-SUBFAMILY of a GVC; None for GVCs without a meaning (such as 999, free text)."""
    return _CODES.get((gvc, is_credit))


def _codes() -> dict[tuple[str | None, bool], str]:
    codes: dict[tuple[str | None, bool], str] = {}
    for row in _ROWS.split("\n"):
        words = row.split()
        names = [word for word in words if "-" in word]
        for gvc in words[len(names) :]:
            codes[gvc, False], codes[gvc, True] = names[0], names[-1]
    return codes


_CODES = _codes()
