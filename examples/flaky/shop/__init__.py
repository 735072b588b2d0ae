"""A corner shop with five habits that make tests flaky. Nothing here knows of Hermetic."""
