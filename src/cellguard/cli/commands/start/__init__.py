"""Commands of the panel "Start": from data to a first release."""
