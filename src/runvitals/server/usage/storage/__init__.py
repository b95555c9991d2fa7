"""Usage of runs by day; prices, plans and statements. `UsageStore` has all of it."""
