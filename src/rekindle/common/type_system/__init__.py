"""The classes behind `rekindle.common.typeinfo`, from which users import them."""
