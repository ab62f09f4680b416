"""Two processes of a real Dask cluster, for tests that kill them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.reference import LIGHT


@contextmanager
def two_workers(allowed_failures: int) -> Iterator[Any]:
    """A client; a task is given up once it has been lost with more workers than are allowed."""
    distributed = pytest.importorskip("distributed")
    import dask.config

    settings = {
        "distributed.scheduler.allowed-failures": allowed_failures,
        # On a loaded machine a killed worker is back later than the cluster waits for it, which
        # then gives its place up, and trips over that.
        "distributed.deploy.lost-worker-timeout": "5 minutes",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            # Any port: other workers of the test run have clusters, too.
            dashboard_address=":0",
            env=LIGHT,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
