"""The papers' experiments: published results beside ours.

An experiment is a folder: `experiment.toml` (title, the function that runs it, parameters, plans),
plans for the simulator, `published.json` (the published values, and what counts as agreement), and
a `README.md`. The command is ``corridor-study``.
"""
