"""Measures the statement readers: seconds, memory and rows per second for growing generated files.

    python tests/benchmarks/readers.py camt 200000
    python tests/benchmarks/readers.py mt940 100000
    python tests/benchmarks/readers.py mt940 100000 --apart

Each size runs in a process of its own, so that the memory shown is that reader's peak above an idle interpreter.
"""

import argparse
import io
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout, installed or not

from connectors.camt import reader as camt_reader
from connectors.mt940 import reader as mt940_reader
from connectors.statements import read_records

ENTRY = """<Ntry><NtryRef>{i}</NtryRef><Amt Ccy="EUR">{i}.25</Amt><CdtDbtInd>{mark}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>
<BookgDt><Dt>2026-0{month}-1{day}</Dt></BookgDt><ValDt><Dt>2026-0{month}-1{day}</Dt></ValDt><AcctSvcrRef>2026{i:012d}</AcctSvcrRef>
<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RDDT</Cd><SubFmlyCd>ESDD</SubFmlyCd></Fmly></Domn><Prtry><Cd>NDDT+105+00931</Cd><Issr>DK</Issr></Prtry></BkTxCd>
<NtryDtls><TxDtls><Refs><EndToEndId>E2E-{i}</EndToEndId><MndtId>M-{i}</MndtId></Refs><RltdPties><Cdtr><Pty><Nm>Stadtwerke
 Musterstadt {i}</Nm></Pty></Cdtr><CdtrAcct><Id><IBAN>DE02120300000000202051</IBAN></Id></CdtrAcct></RltdPties>
<RmtInf><Ustrd>Abschlag Strom Vertrag {i}</Ustrd></RmtInf></TxDtls></NtryDtls><AddtlNtryInf>FOLGELASTSCHRIFT</AddtlNtryInf></Ntry>
"""  # noqa: E501 - one entry of about 700 bytes, as the measured real file had


def camt(rows: int) -> Iterator[str]:
    yield '<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt>'
    yield "<Id>1</Id><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct>"
    for i in range(rows):
        yield ENTRY.format(i=i, mark="DBIT" if i % 3 else "CRDT", month=1 + i % 9, day=i % 10)
    yield "</Stmt></BkToCstmrStmt></Document>"


def mt940(rows: int) -> Iterator[str]:
    for page in range(0, rows, 500):
        yield f":20:STARTUMS\r\n:25:37040044/0532013000\r\n:28C:{page // 500 % 99999}/1\r\n:60F:C260101EUR100,00\r\n"
        for i in range(page, min(page + 500, rows)):
            mark = "D" if i % 3 else "C"
            yield f":61:260{1 + i % 9}1{i % 10}0{1 + i % 9}1{i % 10}{mark}R{i},25NDDTNONREF//2026{i:012d}\r\n"
            yield f":86:105?00FOLGELASTSCHRIFT?109310?20EREF+E2E-{i}?21MREF+M-{i}?22CRED+DE98ZZZ09999999999\r\n"
            yield f"?23SVWZ+Abschlag Strom Vert?24rag {i}?30BYLADEM1001?31DE02120300000000202051?32Stadtwerke {i}\r\n"
        yield ":62F:C260131EUR100,00\r\n-\r\n"


def measure(name: str, rows: int, path: Path, *, is_apart: bool) -> str:
    """One line of figures: of the reader in this very process, or of the way through the process that parses."""
    read = read_records if is_apart else {"camt": camt_reader.read, "mt940": mt940_reader.read}[name]
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, began_cpu = time.perf_counter(), time.process_time()
    with path.open("rb") as stream:
        found = sum(type(record).__name__ == "TransactionRecord" for record in read(stream))
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    assert found == rows, found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = path.stat().st_size / 1e6
    per_second = rows / seconds
    return (
        f"{name} {rows} rows {size:.0f} MB: {seconds:.2f} s ({cpu:.2f} s of processor), {per_second:,.0f} rows/s, "
        f"{(peak - idle) / 1024:.0f} MB above idle, {peak / 1024:.0f} MB in all"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["camt", "mt940"])
    parser.add_argument("rows", type=int)
    parser.add_argument("--apart", action="store_true", help="through the process that parses, as the service does")
    parser.add_argument("--file", type=Path, help="measure this file, in this process")
    arguments = parser.parse_args()
    if arguments.file:
        print(measure(arguments.name, arguments.rows, arguments.file, is_apart=arguments.apart))
        return
    generate = {"camt": camt, "mt940": mt940}[arguments.name]
    for rows in (arguments.rows // 4, arguments.rows // 2, arguments.rows):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "statement"
            with path.open("wb") as stream:
                text = io.TextIOWrapper(stream, encoding="utf-8")
                text.writelines(generate(rows))
                text.flush()
            command = [sys.executable, __file__, arguments.name, str(rows), "--file", str(path)]
            subprocess.run([*command, *["--apart"][: arguments.apart]], check=True)


if __name__ == "__main__":
    main()
