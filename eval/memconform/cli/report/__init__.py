"""The verb `report`."""
