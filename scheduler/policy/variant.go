package policy

// Variants replace rules of policies by others, such as those of another simulator. A
// package of policies with variants declares one type for them; its zero value replaces
// nothing. A Variants holds at most one value of each type.
type Variants []any

// VariantOf returns the variant of type T, its zero value if d has none.
func VariantOf[T any](d Deps) T {
	for _, v := range d.Variants {
		if t, ok := v.(*T); ok {
			return *t
		}
	}
	var none T
	return none
}

// EditVariant calls edit with the variant of type T in vs, which it adds if there is
// none.
func EditVariant[T any](vs *Variants, edit func(*T)) {
	for _, v := range *vs {
		if t, ok := v.(*T); ok {
			edit(t)
			return
		}
	}
	t := new(T)
	edit(t)
	*vs = append(*vs, t)
}
