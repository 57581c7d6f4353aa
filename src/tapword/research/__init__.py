"""The paper's protocol: data sets, orders, runs, metrics, reports."""
