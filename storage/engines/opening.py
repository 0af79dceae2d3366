"""Opens the store that a URL names, with the engine that the URL's scheme names."""

from pathlib import Path

from storage.database import Now, Store, StoreError, utc_now

NO_POSTGRESQL = "PostgreSQL needs the extra `postgres`: pip install 'banking-data-service[postgres]'."


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
    """Open and return the store of a `duckdb:///PATH` (made where it is missing) or `postgresql://` URL. Raises
    StoreError.

    `now` gives the time of events at each commit. `app_url`, `pool`, `prepare` and `is_serving` concern connections to
    PostgreSQL; with `is_serving`, a silent server is given up soon. `export_folder` is where a DuckDB store may write
    copies of itself.
    """
    if url.startswith("duckdb:///"):
        from storage.engines.duckdb_file import DuckDBFile  # users of one engine need not load the other

        if app_url:
            raise StoreError(
                "BANKDATA_DATABASE_APP_URL is about PostgreSQL, which BANKDATA_DATABASE_URL does not name."
            )
        return DuckDBFile(Path(url.removeprefix("duckdb:///")), now=now, export_folder=export_folder)
    try:
        from storage.engines.postgresql import PostgreSQL
    except ImportError as error:
        raise StoreError(NO_POSTGRESQL) from error
    return PostgreSQL(url, now=now, app_url=app_url, connections_max=pool, prepare=prepare, is_serving=is_serving)
