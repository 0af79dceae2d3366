"""`bankdata` as a person types it, for the tests of imports."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import Any

from click.testing import CliRunner, Result

from handlers.cli import main
from handlers.work.services import Services, open_services
from tests.engines import ENGINE

BANKDATA = [sys.executable, "-c", "from handlers.cli import main; main()"]
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Shell:
    """`bankdata` as a person types it, on one data folder."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What says where its store is."""
        return {"BANKDATA_DATA_DIR": str(self.folder), **ENGINE.environment(self.folder)}

    def __call__(self, *arguments: str | Path, code: int = 0) -> Result:
        """One command in this process; standard output and error apart."""
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], env=self.environment)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def apart(self, *arguments: str | Path) -> CompletedProcess[str]:
        """One command in a process of its own."""
        return run(
            [*BANKDATA, *(str(argument) for argument in arguments)],
            env={**os.environ, **self.environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def import_(self, *files: Path, user: str = "eva", code: int = 0) -> list[dict[str, Any]]:
        """The reports of an import, file by file."""
        result = self("import", "--user", user, "--json", *files, code=code)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def export(self, format_: str, path: Path, user: str = "eva") -> Path:
        """An export into a file."""
        self("export", "--user", user, "--format", format_, "--output", path)
        return path

    def rows_of(self, user: str, columns: str, table: str = "transactions") -> list[tuple[Any, ...]]:
        """What is stored of one user, in a fixed order."""
        return self.rows(columns, f"{table} WHERE user_id = (SELECT id FROM users WHERE name = '{user}')")

    def opened(self) -> Services:
        """The store itself; close it before the next command."""
        return open_services(ENGINE.settings(self.folder))

    def rows(self, columns: str, table: str = "transactions") -> list[tuple[Any, ...]]:
        """What is stored, in a fixed order."""
        services = self.opened()
        try:
            return sorted(
                (tuple(row.values()) for row in services.everybody.rows(f"SELECT {columns} FROM {table}")), key=_order
            )
        finally:
            services.close()


def _order(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """Null comes last."""
    return [(value is None, value if value is not None else "") for value in row]
