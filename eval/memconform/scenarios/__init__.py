"""How one question is put to a daemon."""

from memconform.scenarios import ask_augmented, ask_basic, search_retrieve_only
from memconform.scenarios.outcome import Scenario

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        ask_basic.AskBasic(),
        ask_augmented.AskAugmented(),
        search_retrieve_only.SearchRetrieveOnly(),
    )
}
