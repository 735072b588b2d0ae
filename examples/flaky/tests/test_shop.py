"""The shop's tests: each passes nearly always, and together they fail about every second time."""

from shop import ledger, limiter, photos, rates, survey


def test_fourth_order_in_a_window_is_refused():
    gate = limiter.Limiter()
    for number in range(3):
        assert gate.allow("ann")
        limiter.sign(f"order {number}")
    assert not gate.allow("ann")


def test_customers_are_content():
    scores = [1, 2, 3, 4, 5, 5, 5, 5]
    assert survey.mean_score(scores, asked=30) > 3.4


def test_first_page_shows_the_first_order():
    orders = ledger.Ledger()
    for fruit in ("pear", "plum", "fig", "lime", "apple", "berry", "cherry", "date"):
        orders.place(fruit)
    assert "pear" in orders.first_page()


def test_newest_photo_is_kept(tmp_path):
    for number in range(photos.ROOM):
        photos.keep(tmp_path, b"old %d" % number)
    newest = photos.keep(tmp_path, b"new")
    assert newest in [path.name for path in tmp_path.iterdir()]


def test_rate_is_fetched():
    with rates.serve() as address:
        assert rates.fetch(address) == 1.0842
