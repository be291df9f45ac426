package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
)

// A mutant is one change of a source file.
type mutant struct {
	file     string
	line     int
	offset   int // of old in the file, in bytes
	old, new string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s became %s", m.file, m.line, m.old, m.new)
}

// apply returns the changed source.
func (m mutant) apply(source []byte) []byte {
	out := slices.Clone(source[:m.offset])
	out = append(out, m.new...)
	return append(out, source[m.offset+len(m.old):]...)
}

// swaps are the operators that are exchanged.
var swaps = map[token.Token][]token.Token{
	token.LSS: {token.LEQ}, token.LEQ: {token.LSS}, token.GTR: {token.GEQ}, token.GEQ: {token.GTR},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD_ASSIGN: {token.SUB_ASSIGN, token.ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// mutantsOf lists the changes of a file, in the order of their places.
func mutantsOf(file string, source []byte) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []mutant
	add := func(at token.Pos, old, new string) {
		p := set.Position(at)
		out = append(out, mutant{file, p.Line, p.Offset, old, new})
	}
	swap := func(at token.Pos, op token.Token) {
		for _, to := range swaps[op] {
			add(at, op.String(), to.String())
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.ArrayType, *ast.Field:
			return false
		case *ast.BinaryExpr:
			swap(n.OpPos, n.Op)
		case *ast.AssignStmt:
			swap(n.TokPos, n.Tok)
		case *ast.IncDecStmt:
			swap(n.TokPos, n.Tok)
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 1 {
				switch id.Name {
				case "min":
					add(id.Pos(), "min", "max")
				case "max":
					add(id.Pos(), "max", "min")
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.INT || n.Kind == token.FLOAT {
				add(n.Pos(), n.Value, "("+n.Value+"+1)")
			}
		}
		return true
	})
	slices.SortStableFunc(out, func(a, b mutant) int { return cmp.Compare(a.offset, b.offset) })
	return out, nil
}
