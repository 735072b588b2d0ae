"""The parts of the pytest plugin, one noun per file; nothing here is public.

`plugin` starts the others. `options`, `markers` and `identity` decide which test runs in which sandbox; `protocol` and
`scopes` enter and leave them around tests and around fixtures wider than a test; `findings`, `recording` and `replay`
deal with what comes out; `ledger` and `summary` tell the user; `neighbours` and `harness_clock` keep the peace with
pytest and its other plugins.
"""
