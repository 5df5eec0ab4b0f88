"""Send the clusters of a publication to the workers of a running Dask scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cellguard.exceptions import InputError

__all__ = ["use_scheduler"]

_CONNECT_S = 10
"""Seconds to wait for the scheduler."""


@contextmanager
def use_scheduler(address: str) -> Iterator[None]:
    """Run parallel work on the workers of a scheduler; refuse one that cannot be reached or has other versions."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "scheduler: dask is not installed.", hint="pip install 'cellguard[dask]', here and for the workers."
        ) from None
    from joblib import parallel_config

    try:
        client = Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"scheduler {address}: cannot be reached ({type(error).__name__}).",
            hint="an address such as tcp://10.0.0.5:8786; is the scheduler running?",
        ) from None
    with client:
        _refuse_other_versions(client, address)
        with client.as_current(), parallel_config(backend="dask", wait_for_workers_timeout=_CONNECT_S):
            yield


def _refuse_other_versions(client: Any, address: str) -> None:
    """Refuse a cluster without workers, or with workers that have another version of cellguard."""
    from cellguard import __version__

    found = client.run(_get_worker_version)
    if not found:
        raise InputError(f"scheduler {address}: has no workers.", hint="start a worker: dask worker ADDRESS")
    others = sorted({version for version in found.values() if version != __version__})
    if others:
        raise InputError(
            f"scheduler {address}: workers have cellguard {', '.join(others)}, this is {__version__}.",
            hint="install the same version for all workers.",
        )


def _get_worker_version() -> str:
    try:
        from cellguard import __version__
    except ImportError:
        return "not installed"
    return str(__version__)
