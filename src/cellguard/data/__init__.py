"""Where tables come from: records, rules, the respondents who attack, examples and generated tables."""
