"""What runs used, by day; prices, plans and statements. `UsageStore` has all of it."""
