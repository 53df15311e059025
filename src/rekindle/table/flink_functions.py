"""The names of Flink's functions, by what becomes of them here. A name that Flink has not is Spark's.

The lists were made by running PyFlink 2.3 and Spark side by side, with nulls, negative numbers and empty texts.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Spark computes the same, or raises an error where Flink returns null or wraps around.
SAME = _names(
    """abs acos array_append array_distinct array_except array_intersect array_join array_max array_min array_prepend
    array_union asin atan atan2 bin btrim cardinality char_length character_length chr coalesce concat concat_ws cos
    cosh cot count current_date current_timestamp date_format decode degrees e elt encode endswith exp from_unixtime
    hex if ifnull instr lag lead left localtimestamp lower map_entries map_from_arrays map_keys map_values max md5 min
    now nullif parse_url percent_rank percentile pi position power printf radians rand regexp regexp_count
    regexp_extract_all regexp_instr regexp_substr repeat reverse right round sha1 sha2 sin sinh sqrt startswith tan tanh
    trim unix_timestamp upper url_encode uuid"""
)

#: Their meaning depends on types: translated for some, refused for others.
BY_TYPE_NAMES = _names(
    "avg ceil ceiling floor mod sign stddev stddev_pop stddev_samp sum timestampadd var_pop var_samp variance"
)

#: Flink's, without a counterpart.
ABSENT = _names(
    """array_concat array_reverse array_slice bitmap_and bitmap_and_agg bitmap_and_cardinality_agg bitmap_andnot
    bitmap_build bitmap_build_agg bitmap_build_cardinality_agg bitmap_cardinality bitmap_from_bytes bitmap_or
    bitmap_or_agg bitmap_or_cardinality_agg bitmap_to_array bitmap_to_bytes bitmap_to_string bitmap_xor bitmap_xor_agg
    bitmap_xor_cardinality_agg collect convert_tz current_row_timestamp current_watermark element group_id inet_aton
    inet_ntoa is_alpha is_decimal is_digit is_valid_utf8 json json_array json_arrayagg json_exists json_length
    json_objectagg json_query json_quote json_string json_type json_unquote json_value make_valid_utf8 map_union
    object_of object_update parse_json proctime rand_integer row truncate try_parse_json"""
)

#: Spark's own meaning is another one, and no text has Flink's. The reasons say what Spark does, and what to do.
REFUSED = {
    "array_agg": "leaves nulls out: use COLLECT_LIST, which says so.",
    "cume_dist": "counts equal rows together, which Flink does not: use PERCENT_RANK or RANK.",
    "current_database": "has another one: leave it out.",
    "first_value": "counts nulls, which Flink does not: use MIN, MAX or ROW_NUMBER().",
    "last_value": "counts nulls, which Flink does not: use MIN, MAX or ROW_NUMBER().",
    "overlay": "replaces other characters at the ends of a text: use SUBSTRING and ||.",
    "typeof": "writes types otherwise: use DESCRIBE, or Table.get_schema().",
}
