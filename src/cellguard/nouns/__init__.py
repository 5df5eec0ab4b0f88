"""What everything else speaks of: tables and publications, their hierarchies, attackers and levels, and releases."""
