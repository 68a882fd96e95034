package fakegithub

import (
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// caller is who a request comes from. Exactly one of the constructors' shapes is in use: anonymous (all nil), a
// person (account), an App by its JWT (app), an installation by its token (installation, with the bot as account).
type caller struct {
	account      *account
	app          *app
	installation *installation
	token        *installationToken
}

func (c *caller) anonymous() bool { return c.account == nil && c.app == nil }
func (c *caller) isApp() bool     { return c.app != nil && c.installation == nil }

// bucket names whose limits a request counts against.
func (c *caller) bucket() string {
	switch {
	case c.installation != nil:
		return fmt.Sprintf("installation ID %d", c.installation.id)
	case c.app != nil:
		return fmt.Sprintf("app ID %d", c.app.id)
	case c.account != nil:
		return fmt.Sprintf("user ID %d", c.account.id)
	default:
		return "127.0.0.1"
	}
}

// authenticate reads the Authorization header. A header that is there but wrong is an error, also where none would
// have been needed. Server.mu must be held.
func (s *Server) authenticate(request *http.Request) (*caller, error) {
	scheme, credential, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	credential = strings.TrimSpace(credential)
	switch strings.ToLower(scheme) {
	case "":
		return &caller{}, nil
	case "token", "bearer":
		if strings.Count(credential, ".") == 2 {
			return s.authenticateApp(credential)
		}
		return s.authenticateToken(credential)
	case "basic":
		decoded, err := base64.StdEncoding.DecodeString(credential)
		_, password, found := strings.Cut(string(decoded), ":")
		if err != nil || !found {
			return nil, errBadCredentials
		}
		return s.authenticateToken(password)
	default:
		return nil, errBadCredentials
	}
}

func (s *Server) authenticateToken(value string) (*caller, error) {
	if person := s.world.personTokens[value]; person != nil {
		return &caller{account: person}, nil
	}
	token := s.world.tokens[value]
	if token == nil || !token.expires.After(s.Now()) {
		return nil, errBadCredentials
	}
	i := token.installation
	if s.world.installations[i.id] != i {
		return nil, errBadCredentials
	}
	if !i.suspended.IsZero() {
		return nil, errorStatus(http.StatusForbidden, "This installation has been suspended")
	}
	return &caller{account: i.app.bot, app: i.app, installation: i, token: token}, nil
}

// authenticateApp checks a JWT: RS256 by one of the App's keys, issued by the App's id or client id, issued not in
// the future and expiring at most ten minutes ahead.
// Source: https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
func (s *Server) authenticateApp(text string) (*caller, error) {
	var claims jwt.MapClaims
	parser := jwt.NewParser(jwt.WithoutClaimsValidation(), jwt.WithValidMethods([]string{"RS256"}))
	if _, _, err := parser.ParseUnverified(text, &claims); err != nil {
		return nil, errNotDecodedJWT
	}
	a := s.appByIssuer(claims["iss"])
	if a == nil {
		return nil, errorStatus(http.StatusNotFound, "Integration not found")
	}
	if !signedByOneOf(parser, text, a.keys) {
		return nil, errNotDecodedJWT
	}
	if err := s.checkTimes(claims); err != nil {
		return nil, err
	}
	return &caller{app: a}, nil
}

func signedByOneOf(parser *jwt.Parser, text string, keys []*rsa.PublicKey) bool {
	for _, key := range keys {
		_, err := parser.Parse(text, func(*jwt.Token) (any, error) { return key, nil })
		if err == nil {
			return true
		}
	}
	return false
}

func (s *Server) appByIssuer(issuer any) *app {
	text := fmt.Sprint(issuer)
	if number, ok := issuer.(float64); ok {
		text = strconv.FormatInt(int64(number), 10)
	}
	for _, a := range s.world.apps {
		if text == strconv.FormatInt(a.id, 10) || text == a.clientID {
			return a
		}
	}
	return nil
}

const (
	longestJWT = 10 * time.Minute
	// jwtLeeway forgives clocks that differ by a moment; GitHub's own figure is not published.
	jwtLeeway = 5 * time.Second
)

func (s *Server) checkTimes(claims jwt.MapClaims) error {
	now := s.Now()
	expires, err := claimTime(claims, "exp")
	switch {
	case err != nil || !expires.After(now):
		return errorStatus(http.StatusUnauthorized, "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case expires.After(now.Add(longestJWT + jwtLeeway)):
		return errorStatus(http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
	}
	issued, err := claimTime(claims, "iat")
	if err != nil || issued.After(now.Add(jwtLeeway)) {
		return errorStatus(http.StatusUnauthorized, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	}
	return nil
}

func claimTime(claims jwt.MapClaims, name string) (time.Time, error) {
	number, ok := claims[name].(float64)
	if !ok {
		return time.Time{}, errors.New("claim " + name + " is no number")
	}
	return time.Unix(int64(number), 0), nil
}
