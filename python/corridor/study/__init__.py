"""The papers' experiments: what they published beside what we find.

An experiment is a folder: `experiment.toml` (title, which of our functions makes it, parameters,
plans), plans of the simulator, `published.json` (the published values, and what is accepted as
agreement), and a `README.md`. The command is ``corridor-study``.
"""
