package fakegithub

import (
	"fmt"
	"strconv"
)

// The forms of the conversation pages. Each does what the API would, as the acting person.

func submitComment(v *visit) (string, error) {
	i, err := v.issue()
	if err != nil {
		return "", err
	}
	m, err := v.server.createComment(v.repo, i, actor{account: v.actor}, v.formText("body"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s#issuecomment-%d", v.path(i), m.id), nil
}

func (v *visit) comment() (*comment, error) {
	id, err := strconv.ParseInt(v.echo.Param("id"), 10, 64)
	if err != nil || v.repo.comments[id] == nil {
		return nil, errNotFound
	}
	return v.repo.comments[id], nil
}

func submitEdit(v *visit) (string, error) {
	m, err := v.comment()
	if err != nil {
		return "", err
	}
	place := fmt.Sprintf("%s#issuecomment-%d", v.path(v.repo.issues[m.number]), m.id)
	if v.echo.FormValue("delete") != "" {
		return v.path(v.repo.issues[m.number]), v.server.deleteComment(v.repo, m, actor{account: v.actor})
	}
	return place, v.server.editComment(v.repo, m, actor{account: v.actor}, v.formText("body"))
}

// submitReaction sets a reaction or takes it back: the picker's buttons are switches.
func submitReaction(v *visit) (string, error) {
	reactions, place, err := v.reactionTarget()
	if err != nil {
		return "", err
	}
	_, created, err := v.server.react(reactions, v.actor, v.echo.FormValue("content"))
	if err == nil && !created {
		err = unreactContent(reactions, v.actor, v.echo.FormValue("content"))
	}
	return place, err
}

func (v *visit) reactionTarget() (*[]*reaction, string, error) {
	if v.echo.Param("number") != "" {
		i, err := v.issue()
		if err != nil {
			return nil, "", err
		}
		return &i.reactions, v.path(i), nil
	}
	m, err := v.comment()
	if err != nil {
		return nil, "", err
	}
	return &m.reactions, fmt.Sprintf("%s#issuecomment-%d", v.path(v.repo.issues[m.number]), m.id), nil
}

func submitState(v *visit) (string, error) {
	i, err := v.issue()
	if err != nil {
		return "", err
	}
	state := v.echo.FormValue("state")
	return v.path(i), v.server.editIssue(v.repo, i, actor{account: v.actor}, issueEdit{State: &state})
}

func submitMerge(v *visit) (string, error) {
	i, err := v.issue()
	if err != nil || i.pull == nil {
		return "", errNotFound
	}
	if err := (&caller{account: v.actor}).may(v.repo, "contents:write", RoleWrite); err != nil {
		return "", err
	}
	defer v.server.lockRefs(v.repo)()
	_, err = v.server.mergePull(v.repo, i, actor{account: v.actor}, "merge", "", "", "")
	return v.path(i), err
}

func submitAction(v *visit) (string, error) {
	run, err := v.checkRun()
	if err != nil {
		return "", err
	}
	if v.echo.FormValue("rerequest") != "" {
		return localPath(v.echo.FormValue("back")), v.server.rerequest(v.repo, run, actor{account: v.actor})
	}
	return localPath(v.echo.FormValue("back")), v.server.clickAction(v.repo, run, v.actor, v.echo.FormValue("identifier"))
}
