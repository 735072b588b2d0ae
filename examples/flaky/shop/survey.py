"""Asks some customers, chosen at random, how much they like the shop."""

import random


def mean_score(scores, asked):
    return sum(random.choices(scores, k=asked)) / asked
