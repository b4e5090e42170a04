"""Measures how much of every latency is due to the harness itself."""

import secrets

from memconform.client.client import ContractClient
from memconform.contract.core import SearchRequest
from memconform.contract.wire import Mode, Profile
from memconform.daemons.manifest import Capabilities, Manifest, Serve
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.sdk_runner import Launch
from memconform.stats.quantiles import QuantileSummary
from memconform.storage.temporary import temporary_folder

_SEARCHES = 200


async def overhead() -> QuantileSummary | None:
    """Latency in ms of sequential searches against a server that answers at once.

    Raises:
        DaemonError: if that server does not start.
    """
    request = SearchRequest(query="null", mode=Mode.BM25)
    latencies = []
    with temporary_folder("memconform-null-") as folder:
        launch = Launch(run_id=f"null-{secrets.token_hex(4)}", folder=folder)
        async with (
            ManifestRunner(_null(), folder).serve(launch) as server,
            ContractClient(server.base_url) as client,
        ):
            for _ in range(_SEARCHES):
                _, timings = await client.search("null", request)
                latencies.append(timings.done_ms)
    return QuantileSummary.of(latencies)


def _null() -> Manifest:
    argv = ["{python}", "-m", "memconform.bench.null_server", "{port}"]
    return Manifest(
        name="null",
        language="python",
        serve=Serve(argv=argv, port="announced"),
        capabilities=Capabilities(profiles=[Profile.CORE], modes=[Mode.BM25]),
    )
