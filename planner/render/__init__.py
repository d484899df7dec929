"""Turning results into text: pure functions of a result object, one file per form."""
