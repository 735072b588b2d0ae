"""The parts of the pytest plugin. `stricttest.plugin` decides when they start."""
