package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// Scopes of tokens. Admin includes the others.
const (
	ScopeRead   = "read"   // questions, listings, exports and metrics
	ScopeIngest = "ingest" // store measurements
	ScopeFit    = "fit"    // fit models
	ScopeAdmin  = "admin"  // backups, and everything else
)

// Scopes returns all scopes.
func Scopes() []string { return []string{ScopeRead, ScopeIngest, ScopeFit, ScopeAdmin} }

// MinToken is the least length of a token: 128 random bits in base64.
const MinToken = 22

// Token is what is kept of a token: its secret only as a SHA-256. The secret has 256
// random bits, so that a slow hash, which every request would pay for, adds nothing.
type Token struct {
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero = never
}

// Allows reports whether t has a scope at a time.
func (t *Token) Allows(scope string, now time.Time) bool {
	return !t.Expired(now) && (slices.Contains(t.Scopes, scope) || slices.Contains(t.Scopes, ScopeAdmin))
}

// Expired reports whether t is no longer valid.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// NewToken returns a token and its secret, which is shown once. Errors name the value.
func NewToken(name string, scopes []string, now, expires time.Time) (t Token, secret string, err error) {
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return t, "", fmt.Errorf("access: token name %q is not 1 to 64 printable ASCII characters without spaces", name)
	}
	if len(scopes) == 0 {
		return t, "", fmt.Errorf("access: token %q has no scope: want some of %s", name, strings.Join(Scopes(), ", "))
	}
	for _, s := range scopes {
		if !slices.Contains(Scopes(), s) {
			return t, "", fmt.Errorf("access: scope %q is not one of %s", s, strings.Join(Scopes(), ", "))
		}
	}
	if !expires.IsZero() && !expires.After(now) {
		return t, "", fmt.Errorf("access: token %q would expire at %s, which is past", name, expires.Format(time.RFC3339))
	}
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return t, "", err
	}
	secret = "pacer_" + base64.RawURLEncoding.EncodeToString(b)
	sum := sha256.Sum256([]byte(secret))
	return Token{name, hex.EncodeToString(sum[:]), scopes, now.UTC().Truncate(time.Second), expires.UTC()}, secret, nil
}

// ReadTokens returns the tokens of a file, none where it does not exist.
func ReadTokens(path string) ([]Token, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out struct{ Tokens []Token }
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("access: tokens of %s: %w", path, err)
	}
	for _, t := range out.Tokens {
		if sum, err := hex.DecodeString(t.SHA256); err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("access: tokens of %s: sha256 %q of token %q is not %d hexadecimal digits", path, t.SHA256, t.Name, 2*sha256.Size)
		}
	}
	return out.Tokens, nil
}

// WriteTokens replaces the tokens of a file, which only its owner may read.
func WriteTokens(path string, tokens []Token) error {
	return atomicfile.Write(path, 0o600, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(map[string][]Token{"tokens": tokens})
	})
}

// Tokens are the tokens of a server: one without a file, and those of a file, which
// it reads again when it changes.
type Tokens struct {
	fixed []byte // SHA-256 of the token without a file; nil = none
	file  string // "" = none
	warn  func(error)

	mu      sync.Mutex
	checked time.Time
	changed time.Time // of the file
	byHash  map[string]*Token
}

// Load returns the tokens of a server: token, which allows everything, and those of file; "" = none. Where file
// changes and cannot be read, warn is called and its tokens before stay.
func Load(token, file string, warn func(error)) (*Tokens, error) {
	t := &Tokens{file: file, warn: warn}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		t.fixed = sum[:]
	}
	if t.file == "" {
		return t, nil
	}
	tokens, err := ReadTokens(t.file)
	t.set(tokens)
	return t, err
}

func (t *Tokens) set(tokens []Token) {
	t.byHash = map[string]*Token{}
	for i := range tokens {
		t.byHash[tokens[i].SHA256] = &tokens[i]
	}
}

// Needed reports whether requests need a token.
func (t *Tokens) Needed() bool { return t.fixed != nil || t.file != "" }

// allToken is the token without a file.
var allToken = &Token{Name: "token", Scopes: []string{ScopeAdmin}}

// Find returns the token with a secret, nil = none. It looks up the hash of the
// secret, so its time says nothing about the secret of another token.
func (t *Tokens) Find(secret string) *Token {
	sum := sha256.Sum256([]byte(secret))
	if t.fixed != nil && subtle.ConstantTimeCompare(sum[:], t.fixed) == 1 {
		return allToken
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	return t.byHash[hex.EncodeToString(sum[:])]
}

// reload reads the file again where it changed, at most once a second. A file that
// cannot be read leaves the tokens as they are.
func (t *Tokens) reload() {
	now := time.Now()
	if t.file == "" || now.Sub(t.checked) < time.Second {
		return
	}
	t.checked = now
	info, err := os.Stat(t.file)
	if err == nil && info.ModTime().Equal(t.changed) {
		return
	}
	tokens, readErr := ReadTokens(t.file)
	if err = errors.Join(err, readErr); err != nil {
		t.warn(fmt.Errorf("the tokens before go on to be valid: %w", err))
		return
	}
	t.changed = info.ModTime()
	t.set(tokens)
}
