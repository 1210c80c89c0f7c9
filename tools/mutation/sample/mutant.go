// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
)

// mutant is one change of a token in a file.
type mutant struct {
	pkg  goPackage
	file string
	text []byte // of the file
	at   token.Position
	from string
	to   string
}

// swaps are the changes of tokens: the boundary and the negation of conditions, arithmetic, logic and loop control.
var swaps = map[token.Token][]string{
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"}, token.REM: {"*"},
	token.INC: {"--"}, token.DEC: {"++"},
	token.BREAK: {"continue"}, token.CONTINUE: {"break"},
}

// mutants returns all mutants of a package. Generated files have none.
func mutants(p goPackage) ([]mutant, error) {
	var all []mutant
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(parsed) {
			continue
		}
		add := func(pos token.Pos, t token.Token) {
			for _, to := range swaps[t] {
				all = append(all, mutant{pkg: p, file: path, text: data, at: files.Position(pos), from: t.String(), to: to})
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				add(n.OpPos, n.Op)
			case *ast.UnaryExpr:
				if n.Op == token.SUB {
					add(n.OpPos, n.Op)
				}
			case *ast.IncDecStmt:
				add(n.TokPos, n.Tok)
			case *ast.BranchStmt:
				add(n.TokPos, n.Tok)
			}
			return true
		})
	}
	return all, nil
}

// source returns the file with the change.
func (m mutant) source() []byte {
	end := m.at.Offset + len(m.from)
	return slices.Concat(m.text[:m.at.Offset], []byte(m.to), m.text[end:])
}

func (m mutant) position() string {
	return fmt.Sprintf("%s/%s:%d:%d", m.pkg.ImportPath, filepath.Base(m.file), m.at.Line, m.at.Column)
}

func (m mutant) change() string { return m.from + " becomes " + m.to }
