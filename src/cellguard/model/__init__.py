"""Tables, hierarchies, attackers and protection levels: the data model of the whole package."""
