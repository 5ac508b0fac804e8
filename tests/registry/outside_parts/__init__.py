"""A package with one part of each kind for siesta; `test_outside_package.py` installs it and uses all of them."""
