;; What the scripts of Emacs share: eglot with the server, waiting, and what they tell as JSON lines.
(require 'package)
(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa")
(package-initialize)
(require 'json)
(unless (require 'eglot nil t)
  (princ "{\"no eglot\": true}\n")
  (kill-emacs 0))
(require 'flymake)
(setq eglot-sync-connect 20 eglot-autoreconnect nil make-backup-files nil create-lockfiles nil
      eglot-confirm-server-initiated-edits nil vc-follow-symlinks nil find-file-visit-truename nil
      revert-without-query '(".*"))
(define-derived-mode nexus-json-mode prog-mode "JSON")
(define-derived-mode nexus-markdown-mode prog-mode "Markdown")
(add-to-list 'eglot-server-programs
             `((nexus-json-mode nexus-markdown-mode) . ,(split-string (getenv "NEXUS_COMMAND"))))

(defun wait-for (probe)
  "The first true value of PROBE; nil after 20 seconds."
  (let ((end (+ (float-time) 20)) value)
    (while (and (not (setq value (funcall probe))) (< (float-time) end))
      (accept-process-output nil 0.05))
    value))
(defun tell (name value) (princ (concat (json-encode (list (cons name value))) "\n")))
(defun problems () (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))
(defun wait-problems () (vconcat (wait-for #'problems)))
(defun wait-none () (if (wait-for (lambda () (null (problems)))) "none" (vconcat (problems))))
(defun actions () (append (eglot-code-actions (point-min) (point-max)) nil))
(defun open (name mode)
  (find-file (expand-file-name name (getenv "NEXUS_ROOT")))
  (funcall mode)
  (if (eglot-current-server) (eglot--maybe-activate-editing-mode) (apply #'eglot (eglot--guess-contact)))
  (flymake-mode 1))
(defun replace-all (text) (erase-buffer) (insert text) (eglot--signal-textDocument/didChange))
