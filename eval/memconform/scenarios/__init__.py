"""Scenarios: the ways in which a question is sent to a daemon."""

from memconform.scenarios.ask import AskAugmented, AskBasic
from memconform.scenarios.scenario import Scenario
from memconform.scenarios.search import SearchRetrieveOnly

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario for scenario in (AskBasic(), AskAugmented(), SearchRetrieveOnly())
}
