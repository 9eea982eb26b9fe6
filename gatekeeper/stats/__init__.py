"""Statistics that policies and analyses share: intervals, fits, quantiles, strata."""
