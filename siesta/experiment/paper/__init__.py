"""The paper's experiments: configs, published tables, formulas, and the comparison of our results with them."""
