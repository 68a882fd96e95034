package fakegithub

import (
	"crypto/subtle"
	"net/http"
	"testing/fstest"
	"time"

	"github.com/labstack/echo/v4"
)

// routeControls serves what only tests and the demo use: the clock, faults, seeding and the state. Everything here
// wants the controls token.
func (s *Server) routeControls(e *echo.Echo) {
	controls := e.Group("/_fake", s.controlled)
	controls.GET("/state", func(c echo.Context) error { return c.JSON(http.StatusOK, s.State()) })
	controls.GET("/clock", func(c echo.Context) error { return c.JSON(http.StatusOK, object{"now": s.Now()}) })
	controls.POST("/clock", s.controlClock)
	controls.POST("/faults", s.controlFaults)
	controls.DELETE("/faults", func(c echo.Context) error {
		s.ClearFaults()
		return c.NoContent(http.StatusNoContent)
	})
	controls.POST("/reset", func(c echo.Context) error {
		if err := s.Reset(); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
	controls.POST("/seed", s.controlSeed)
}

func (s *Server) controlled(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		given := []byte(c.Request().Header.Get("Authorization"))
		if subtle.ConstantTimeCompare(given, []byte("Bearer "+s.options.ControlToken)) != 1 {
			return c.JSON(http.StatusUnauthorized, object{"message": "The controls need the token that the fake GitHub was started with."})
		}
		return next(c)
	}
}

func (s *Server) controlClock(c echo.Context) error {
	var wanted struct {
		Advance string `json:"advance"` // a Go duration
	}
	if err := c.Bind(&wanted); err != nil {
		return err
	}
	by, err := time.ParseDuration(wanted.Advance)
	if err != nil {
		return c.JSON(http.StatusUnprocessableEntity, object{"message": "advance is a duration such as 90s or 1h5m"})
	}
	s.Advance(by)
	return c.JSON(http.StatusOK, object{"now": s.Now()})
}

func (s *Server) controlFaults(c echo.Context) error {
	var fault Fault
	if err := c.Bind(&fault); err != nil {
		return err
	}
	s.AddFault(fault)
	return c.NoContent(http.StatusNoContent)
}

// seed is a whole world in one request. Everything is added in this order.
type seed struct {
	Users        []UserSpec `json:"users"`
	Repositories []struct {
		RepositorySpec
		Files map[string]string `json:"files"`
	} `json:"repositories"`
	Apps          []AppSpec          `json:"apps"`
	Installations []InstallationSpec `json:"installations"`
}

// seeded is what came of it, with the tokens and keys.
type seeded struct {
	Users         []User         `json:"users"`
	Repositories  []Repository   `json:"repositories"`
	Apps          []App          `json:"apps"`
	Installations []Installation `json:"installations"`
}

func (s *Server) controlSeed(c echo.Context) error {
	var wanted seed
	if err := c.Bind(&wanted); err != nil {
		return err
	}
	result, err := s.plant(wanted)
	if err != nil {
		return c.JSON(http.StatusUnprocessableEntity, object{"message": err.Error()})
	}
	return c.JSON(http.StatusCreated, result)
}

func (s *Server) plant(wanted seed) (result seeded, err error) {
	for _, spec := range wanted.Users {
		if result.Users, err = appended(result.Users, s.AddUser, spec); err != nil {
			return result, err
		}
	}
	for _, spec := range wanted.Repositories {
		if spec.Files != nil {
			files := fstest.MapFS{}
			for name, content := range spec.Files {
				files[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
			}
			spec.RepositorySpec.Files = files
		}
		if result.Repositories, err = appended(result.Repositories, s.AddRepository, spec.RepositorySpec); err != nil {
			return result, err
		}
	}
	for _, spec := range wanted.Apps {
		if result.Apps, err = appended(result.Apps, s.AddApp, spec); err != nil {
			return result, err
		}
	}
	for _, spec := range wanted.Installations {
		if result.Installations, err = appended(result.Installations, s.Install, spec); err != nil {
			return result, err
		}
	}
	return result, nil
}

func appended[S, T any](list []T, add func(S) (T, error), spec S) ([]T, error) {
	added, err := add(spec)
	if err != nil {
		return list, err
	}
	return append(list, added), nil
}
