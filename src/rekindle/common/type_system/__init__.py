"""The classes behind `rekindle.common.typeinfo`, which is where users import them from."""
