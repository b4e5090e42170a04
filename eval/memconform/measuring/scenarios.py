"""Scenarios: the ways in which a question is sent to a daemon."""

from memconform.measuring.ask_scenarios import AskAugmented, AskBasic
from memconform.measuring.scenario import Scenario
from memconform.measuring.search_scenario import SearchRetrieveOnly

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario for scenario in (AskBasic(), AskAugmented(), SearchRetrieveOnly())
}
