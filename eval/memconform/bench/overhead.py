"""What every latency holds of the harness itself."""

import secrets
from pathlib import Path

from memconform.client.client import ContractClient
from memconform.contract.core import SearchRequest
from memconform.contract.wire import Mode, Profile
from memconform.daemons.manifest import Capabilities, Manifest, Serve
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.runner import Launch
from memconform.runs.results import QuantileSummary
from memconform.runs.store import DaemonFolder

_SEARCHES = 200
_NULL = Manifest(
    name="null",
    language="python",
    serve=Serve(argv=["{python}", "-m", "memconform.fakes.null", "{port}"], port="announced"),
    capabilities=Capabilities(profiles=[Profile.CORE], modes=[Mode.BM25]),
)


async def overhead(folder: Path) -> QuantileSummary | None:
    """Milliseconds of a search by the same client against a server that answers at once.

    Raises:
        DaemonError: where that server does not start.
    """
    own = DaemonFolder(folder)
    launch = Launch(run_id=f"null-{secrets.token_hex(4)}", folder=own.path)
    request = SearchRequest(query="null", mode=Mode.BM25)
    taken = []
    async with (
        ManifestRunner(_NULL, own.path).serve(launch) as server,
        ContractClient(server.base_url) as client,
    ):
        for _ in range(_SEARCHES):
            _, timings = await client.search("null", request)
            taken.append(timings.done_ms)
    own.drop_state()
    return QuantileSummary.of(taken)
