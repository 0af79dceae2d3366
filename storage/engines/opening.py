"""Opens the store that a URL names, by its engine."""

from pathlib import Path

from storage.database import Now, Store, StoreError, utc_now


def open_database(
    url: str,
    *,
    now: Now = utc_now,
    app_url: str = "",
    export_folder: Path | None = None,
    pool: int = 10,
    prepare: bool = True,
    is_serving: bool = False,
) -> Store:
    """The store of a `duckdb:///PATH` (made where it is missing) or `postgresql://` URL; raises StoreError.

    `now` says when what is committed happened. `app_url`, `pool`, `prepare` and `is_serving` are about the connections
    to PostgreSQL; the last has answers that do not come given up soon. `export_folder` is where a DuckDB store may
    write copies of itself.
    """
    if url.startswith("duckdb:///"):
        from storage.engines.duckdb_file import DuckDBFile  # who uses the one engine does not load the other

        if app_url:
            raise StoreError(
                "BANKDATA_DATABASE_APP_URL is about PostgreSQL, which BANKDATA_DATABASE_URL does not name."
            )
        return DuckDBFile(Path(url.removeprefix("duckdb:///")), now=now, export_folder=export_folder)
    try:
        from storage.engines.postgresql import PostgreSQL
    except ImportError as error:
        raise StoreError(
            "PostgreSQL needs the extra `postgres`: pip install 'banking-data-service[postgres]'."
        ) from error
    return PostgreSQL(url, now=now, app_url=app_url, connections_max=pool, prepare=prepare, is_serving=is_serving)
