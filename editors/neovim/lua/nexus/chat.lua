--- :NexusChat: a prompt buffer whose lines go to the configured provider (nexus/chat/send). Above the prompt the
--- answer grows as it comes, with a line for each tool call. CTRL-C cancels, and what was said is kept.

local nexus = require('nexus')
local text = require('nexus.text')

local M = {}

local MOST_ARGUMENTS = 2000 -- characters of a call's arguments that a question shows
local STREAM = 'nexus-chat-'

---@class nexus.Chat
---@field buffer integer
---@field folder string
---@field session? string
---@field request? {client: vim.lsp.Client, id: integer} that runs
---@field kind? string of the last item that is shown

--- By the token of its stream: the token has the buffer's number.
---@type table<string, nexus.Chat>
local chats = {}

local function shorten(value, most)
  local line = (type(value) == 'string' and value or vim.json.encode(value)):gsub('%s+', ' ')
  local length = vim.fn.strchars(line)
  return length <= most and line or vim.fn.strcharpart(line, 0, most) .. '…'
end

--- Append text above the prompt, behind what is there; a text with line ends makes lines.
local function append(chat, piece, is_new_line)
  if not vim.api.nvim_buf_is_valid(chat.buffer) then
    return
  end
  local last = vim.api.nvim_buf_line_count(chat.buffer) - 1 -- the prompt
  local lines = vim.split(piece, '\n')
  if is_new_line or last == 0 then
    vim.api.nvim_buf_set_lines(chat.buffer, last, last, false, lines)
  else
    local before = vim.api.nvim_buf_get_lines(chat.buffer, last - 1, last, false)[1]
    lines[1] = before .. lines[1]
    vim.api.nvim_buf_set_lines(chat.buffer, last - 1, last, false, lines)
  end
  vim.bo[chat.buffer].modified = false
  local prompt = vim.api.nvim_buf_line_count(chat.buffer)
  for _, window in ipairs(vim.fn.win_findbuf(chat.buffer)) do -- one that is typed in follows by itself
    if window ~= vim.api.nvim_get_current_win() then
      vim.api.nvim_win_set_cursor(window, { prompt, 0 })
    end
  end
end

local function show(chat, item)
  local continues = chat.kind == item.kind
  local agent = item.agent and item.agent .. ' ' or ''
  if item.kind == 'text' then
    append(chat, item.text or '', not continues)
  elseif item.kind == 'thinking' and not continues then
    append(chat, 'Thinking …', true)
  elseif item.kind == 'notice' then
    append(chat, item.text, true)
  elseif item.kind == 'toolCall' then
    append(chat, ('%s> %s %s'):format(agent, item.name, shorten(item.arguments or {}, 200)), true)
  elseif item.kind == 'toolResult' and item.isError then
    append(chat, ('%s  %s failed: %s'):format(agent, item.name, shorten(item.text or '', 200)), true)
  end
  chat.kind = item.kind
end

--- Handler of $/progress: items of a chat are shown, all else is Neovim's.
function M.on_progress(err, params, context)
  local chat = chats[params.token]
  if not chat then
    return vim.lsp.handlers['$/progress'](err, params, context)
  end
  for _, item in ipairs(params.value) do
    show(chat, item)
  end
end

--- Handler of nexus/tool/approve.
function M.on_approve(_, params)
  local whose = params.server and (' of the MCP server ' .. params.server) or ''
  local question = ('Allow %s to call %s%s?\n%s'):format(
    params.agent and 'agent ' .. params.agent or 'the model',
    params.tool,
    whose,
    shorten(params.arguments, MOST_ARGUMENTS)
  )
  local choice = vim.fn.confirm(question, '&Allow\nAllow in this &conversation\n&No', 3)
  return { approved = choice == 1 or choice == 2, remember = choice == 2 }
end

local function finish(chat, failure, result)
  chat.request = nil
  chat.kind = nil
  if failure then
    append(chat, failure, true)
  else
    chat.session = result.session
    local usd = result.spending.usd
    local facts = {
      result.session,
      result.model,
      ('%.1f %% of %s tokens'):format(result.usage.percent, text.grouped(result.usage.available)),
      text.plural(result.steps, 'step'),
      usd and ('$%.4f'):format(usd) or 'no price known',
    }
    append(chat, ('[%s]'):format(table.concat(facts, ', ')), true)
  end
  append(chat, '', true)
end

local function send(chat, token, message)
  if chat.request then
    return append(chat, 'An answer is on its way: CTRL-C cancels it.', true)
  end
  if message == '' then
    return
  end
  chat.kind = nil
  local params = { message = message, session = chat.session, partialResultToken = token }
  local request = {}
  chat.request = request
  nexus.start(chat.folder, function(client)
    if chat.request ~= request then -- cancelled before the daemon was ready
      return
    end
    params.workspaceFolder = vim.uri_from_fname(chat.folder)
    request.client = client
    _, request.id = client:request('nexus/chat/send', params, function(err, result)
      if chat.request == request then
        finish(chat, err and err.message, result)
      end
    end)
  end)
end

local function cancel(chat)
  local request = chat.request
  if request then
    if request.id then
      request.client:cancel_request(request.id)
    end
    finish(chat, 'Cancelled. What was said is kept.') -- Neovim drops the reply to a cancelled request
  end
end

--- :NexusChat [session]
function M.chat(call)
  local folder = nexus.folder()
  local name = 'nexus://chat' .. folder
  local open = vim.fn.bufnr('^' .. vim.fn.escape(name, '\\*?[{,') .. '$')
  if open > 0 then
    vim.cmd({ cmd = 'sbuffer', args = { tostring(open) }, mods = call.smods })
    local chat = chats[STREAM .. open]
    chat.session = call.args ~= '' and call.args or chat.session
    return
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.cmd({ cmd = 'sbuffer', args = { tostring(buffer) }, mods = call.smods })
  vim.api.nvim_buf_set_name(buffer, name)
  vim.b[buffer].nexus_folder = folder
  vim.bo[buffer].buftype = 'prompt'
  vim.bo[buffer].bufhidden = 'hide'
  vim.bo[buffer].filetype = 'markdown'
  vim.wo.wrap, vim.wo.linebreak = true, true
  local token = STREAM .. buffer
  local chat = { buffer = buffer, folder = folder, session = call.args ~= '' and call.args or nil }
  chats[token] = chat
  vim.fn.prompt_setprompt(buffer, '> ')
  vim.fn.prompt_setcallback(buffer, function(message)
    send(chat, token, vim.trim(message))
  end)
  vim.fn.prompt_setinterrupt(buffer, function()
    cancel(chat)
  end)
  vim.keymap.set('n', '<C-c>', function()
    cancel(chat)
  end, { buffer = buffer, desc = 'Cancel the answer' })
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buffer,
    once = true,
    callback = function()
      cancel(chat)
      chats[token] = nil
    end,
  })
  vim.cmd.startinsert()
end

return M
