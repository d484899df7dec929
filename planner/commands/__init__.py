"""One file per verb: parse, call one library function, print. Options shared by verbs are declared once."""
