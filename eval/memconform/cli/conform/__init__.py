"""The verb `conform`."""
